//! What the history of files says of authors.

mod claim;
