//! The SDK's core, without I/O: what a publisher and a subscriber decide, as state machines.
