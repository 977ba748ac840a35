//! Texts: replacing in a file's bytes, so that line endings, quotation marks,
//! a byte order mark and a missing last newline stay as the file has them
//! (GUARD-2); comparing them by lines; secrets in what is to be kept (SEC-3).

pub mod cut;
pub mod lines;
pub mod quotes;
pub mod replace;
pub mod tokens;
