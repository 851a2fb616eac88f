"""logging: levels, handlers, formatters, exceptions, configuration."""

import logging
import logging.config
import logging.handlers
import sys

logging.config.dictConfig(
    {
        "version": 1,
        "formatters": {"short": {"format": "%(levelname)-8s %(name)s: %(message)s"}},
        "handlers": {
            "out": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout", "formatter": "short"},
            "file": {
                "class": "logging.handlers.RotatingFileHandler",
                "filename": "app.log",
                "maxBytes": 200,
                "backupCount": 2,
                "formatter": "short",
            },
        },
        "root": {"level": "INFO", "handlers": ["out", "file"]},
        "loggers": {"noisy": {"level": "ERROR"}},
    }
)
log = logging.getLogger("app.part")
log.debug("not shown")
log.info("started with %d %s", 3, "things")
logging.getLogger("noisy").warning("not shown either")
log.warning("careful", extra={"user": "x"})
logging.captureWarnings(True)
try:
    1 / 0
except ZeroDivisionError:
    log.exception("failed")
for i in range(8):
    log.info("line %d", i)
log.log(25, "between")
logging.addLevelName(25, "NOTICE")
log.log(25, "named")
log.handlers or print(log.hasHandlers(), log.getEffectiveLevel(), file=sys.stdout)
