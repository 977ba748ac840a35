//! What agents' tools do with files beside reading and writing them: searches.
//! Nothing here is recorded, and nothing here decides who wrote.

pub mod grep;
