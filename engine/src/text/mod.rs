//! Texts: replacing in a file's bytes so that line endings, quotation marks, a
//! byte order mark and a missing last newline stay as in the file (GUARD-2),
//! comparing texts by lines, and finding secrets in them (SEC-3).

pub(crate) mod align;
pub mod cut;
pub(crate) mod differences;
pub mod form;
pub mod lines;
pub mod missing;
pub mod quotes;
pub mod replace;
pub(crate) mod shown;
pub mod tokens;
