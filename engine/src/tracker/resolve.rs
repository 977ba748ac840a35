//! From a name in a request to a path of the workspace.

use touchmark_proto::path::PathError;
use touchmark_proto::{ClientPath, Error, ErrorCode, ErrorData, RelPath};

/// Returns a client's name as a path of the workspace at `root`, by text alone.
///
/// # Errors
/// `outsideWorkspace`, `notAFile` for the workspace itself, `invalidParams` for
/// a name that cannot be a path.
pub fn within(path: &ClientPath, root: &[u8]) -> Result<RelPath, Error> {
    path.normalise(root).map_err(|reason| {
        let named = String::from_utf8_lossy(path.as_bytes())
            .chars()
            .take(200)
            .collect();
        let code = match reason {
            PathError::Outside => ErrorCode::OutsideWorkspace,
            PathError::Empty => ErrorCode::NotAFile,
            PathError::TooLong | PathError::Nul => ErrorCode::InvalidParams,
        };
        Error::new(code, reason.to_string()).with(ErrorData {
            spoken: Some(named),
            ..ErrorData::default()
        })
    })
}

/// Folds a name's case: by Unicode's simple folding, or by ASCII's if the name
/// is not UTF-8 (SEEN-6).
pub(crate) fn fold(path: &RelPath) -> RelPath {
    let folded: Vec<u8> = match std::str::from_utf8(path.as_bytes()) {
        Ok(text) => text
            .chars()
            .map(|c| {
                // Simple folding maps one character to one character.
                let mut lower = c.to_lowercase();
                match (lower.next(), lower.next()) {
                    (Some(one), None) => one,
                    _ => c,
                }
            })
            .collect::<String>()
            .into_bytes(),
        Err(_) => path.as_bytes().to_ascii_lowercase(),
    };
    RelPath::new(&folded).unwrap_or_else(|_| path.clone())
}
