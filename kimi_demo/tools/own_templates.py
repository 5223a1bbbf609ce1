"""Tools to start from in the editor, one for each way to answer."""

import json
from typing import Any

from kimi_demo.tools.own import OwnTool


def _schema(required: list[str], **properties: dict[str, Any]) -> str:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return json.dumps(schema, ensure_ascii=False, indent=2)


_CITY = {"type": "string", "description": "City, for example Beijing"}
_DAYS = {"type": "integer", "minimum": 1, "maximum": 7, "description": "How many days ahead"}
_ORDER = {"type": "string", "pattern": "^[A-Z]{2}[0-9]{6}$", "description": "Order number, for example KM004217"}
_QUERY = {"type": "string", "minLength": 1, "description": "What to look for"}
_SHIPPED = {"status": "shipped", "carrier": "SF Express", "expected": "2026-12-03"}

TEMPLATES: dict[str, OwnTool] = {
    "empty": OwnTool(name="", parameters=_schema([]), answering="ask"),
    "search": OwnTool(
        name="web_search",
        description="Search the web and return the most relevant results.",
        parameters=_schema(["query"], query=_QUERY),
        answering="ask",
    ),
    "weather": OwnTool(
        name="get_weather",
        description="Get the weather forecast for a city.",
        parameters=_schema(["city"], city=_CITY, days=_DAYS),
        answering="template",
        text='{"city": {{city}}, "days": {{days}}, "forecast": "sunny", "temperature_c": 21}',
    ),
    "order": OwnTool(
        name="get_order_status",
        description="Look up the status of a customer's order.",
        parameters=_schema(["order_id"], order_id=_ORDER),
        answering="fixed",
        text=json.dumps(_SHIPPED),
    ),
}
