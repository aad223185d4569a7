"""Records calls of large language models in Weir.

The application calls its providers directly; what it asked, got, used and
waited for is sent to Weir in the background.
"""

from weir.logger import AsyncLogger

__all__ = ["AsyncLogger"]
