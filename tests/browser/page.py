"""The page as a person drives it, in names that tests can read."""

from typing import Any

from playwright.async_api import Browser, Locator, Page, expect

LOADED_MS = 30_000
ENGINE_MS = 240_000
"""A real engine may have to load first, on two busy cores."""


class DemoPage:
    """One browser tab on the demo. Everything that the console or the page itself complained about is in `complaints`."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.complaints: list[str] = []
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _hear(self, kind: str, text: str) -> None:
        if kind == "error" and "status of 422" not in text:  # a refusal is an answer of 422, which the console repeats
            self.complaints.append(text)

    @classmethod
    async def open(cls, browser: Browser, address: str, **context: Any) -> "DemoPage":
        """In a context of its own: another visitor, with six connections of their own."""
        opened = await (await browser.new_context(**context)).new_page()
        found = cls(opened, address)
        await found.load()
        return found

    async def load(self) -> None:
        await self.page.goto(self.address, wait_until="domcontentloaded")
        await self.page.wait_for_function("window.kimi !== undefined", timeout=LOADED_MS)
        await expect(self.page.get_by_role("tab", name="Chat")).to_be_visible(timeout=LOADED_MS)
        # What a browser remembers is put into the fields a moment later; what a test has written by then would be lost.
        await expect(self.at("html")).to_have_attribute("data-restored", "1", timeout=LOADED_MS)

    async def load_again(self) -> None:
        """At the address that it has now, whatever of it is shown."""
        await self.page.reload(wait_until="domcontentloaded")
        await expect(self.at("html")).to_have_attribute("data-restored", "1", timeout=LOADED_MS)

    async def close(self) -> None:
        await self.page.context.close()

    def at(self, selector: str) -> Locator:
        return self.page.locator(selector)

    async def tab(self, name: str) -> None:
        await self.page.get_by_role("tab", name=name).click()

    async def ask(self, kind: str, text: str) -> None:
        """Writes into the tab's field and presses Enter."""
        field = self.at(f"#{kind}-input textarea")
        await field.fill(text)
        await field.press("Enter")

    async def idle(self, kind: str) -> None:
        """Until nothing is being written in the tab (the run that was asked for has begun and ended)."""
        await expect(self.at("html")).to_have_attribute(f"data-{kind}", "idle", timeout=ENGINE_MS)

    def run(self, kind: str, number: int = -1) -> Locator:
        """A run of the tab: a chat turn, a tool question, a batch."""
        box = "batch-results" if kind == "batch" else kind
        runs = self.at(f"#{box} [data-run]")
        return runs.last if number == -1 else runs.nth(number)
