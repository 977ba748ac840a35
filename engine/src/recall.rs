//! Answers out of the log: what the store found, in the protocol's shape.
