"""What can go wrong with Spark, each a sentence that says what to do.

SparkError
├── SparkUnavailableError    no usable Java, or its JVM did not start
├── RunUnreadableError       the folder, its run.json or its spool cannot be read
├── RunUnfinishedError       no run.json: the run goes on, or was killed
├── TablesUnwritableError    the disk is full or read-only
├── DatasetUnreadableError   the tables of many runs are damaged, or there are none
├── FollowedElsewhereError   another process keeps the live table
├── ForeignCheckpointError   the live table was begun by other code, or is damaged
└── SparkJobError            anything else that Spark reports
"""


class SparkError(Exception):
    """The analysis could not be done; the run itself is untouched."""


class SparkUnavailableError(SparkError):
    """No Spark session can be had on this machine as it is."""


class RunUnreadableError(SparkError):
    """There is no run here that could be analysed."""


class RunUnfinishedError(SparkError):
    """The run has no run.json yet, which is the mark of a finished one."""


class TablesUnwritableError(SparkError):
    """The tables cannot be written into the run's folder."""


class DatasetUnreadableError(SparkError):
    """There are no tables of runs at this place, or none that this version reads."""


class SparkJobError(SparkError):
    """Spark gave up for a reason of its own."""


class FollowedElsewhereError(SparkError):
    """Another process keeps the run's live table."""


class ForeignCheckpointError(SparkError):
    """The live table was begun by other code, or is damaged."""
