//! What came of all scenarios with all agents.
