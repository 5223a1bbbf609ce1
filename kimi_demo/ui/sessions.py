"""Who has signed in: a signed value in a cookie, which says as whom and until when. Pure but for the time that is handed in."""

from dataclasses import dataclass

from kimi_demo.accounts import Accounts, Role
from kimi_demo.ui.signing import signed, unsigned

GUEST = "*"
"""The name of those who came by the invitation."""


@dataclass(frozen=True)
class Sessions:
    """key: what the values are signed with; accounts: None where there is only an invitation; lasts_s: of a session."""

    key: bytes
    accounts: Accounts | None
    lasts_s: float

    def begin(self, name: str, mark: str, now: float) -> str:
        """The value of the cookie. now: seconds since the epoch."""
        return signed(self.key, "session", f"{name}|{mark}|{int(now + self.lasts_s)}")

    def role(self, value: str, now: float) -> Role | None:
        """Of who carries this value; None for one that is over, of an account that was changed, or no value of ours."""
        text = unsigned(self.key, "session", value)
        if text is None or text.count("|") != 2:
            return None
        name, mark, until = text.split("|")
        if not until.isdigit() or now >= int(until):
            return None
        if name == GUEST:
            return "viewer"
        account = self.accounts.named(name) if self.accounts is not None else None
        return account.role if account is not None and account.mark == mark else None

    def invitation(self, until: float) -> str:
        """The token of an invitation that is good until then."""
        return signed(self.key, "invitation", str(int(until)))

    def is_invitation(self, token: str, now: float) -> bool:
        text = unsigned(self.key, "invitation", token)
        return text is not None and text.isdigit() and now < int(text)
