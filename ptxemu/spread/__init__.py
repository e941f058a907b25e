"""One launch spread over several processes, each of which runs a part of its blocks on a copy of the memory."""
