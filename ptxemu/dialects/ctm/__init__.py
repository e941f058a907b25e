"""CTM: programs of ATI's data-parallel processors that write OUTPUT targets or scatter by UMRT (ATI CTM Guide 1.01)."""
