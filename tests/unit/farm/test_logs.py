import io
import json
import logging

from farm.logs import Action, JsonFormatter, context


def test_a_line_is_json_with_its_action_and_context():
    stream = io.StringIO()
    logger = logging.getLogger("tests.logs")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger.addHandler(handler)
    logger.propagate = False
    try:
        raise ValueError("broken")
    except ValueError:
        logger.exception("it failed\nbadly", extra=context(Action.STEP_FAILED, fence=3))
    finally:
        logger.removeHandler(handler)
    (text,) = stream.getvalue().splitlines()
    line = json.loads(text)
    assert (line["action"], line["fence"], line["level"]) == ("step_failed", 3, "error")
    assert line["message"] == "it failed\nbadly"
    assert "ValueError: broken" in line["traceback"]
