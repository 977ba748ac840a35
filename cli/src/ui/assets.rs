//! The files of the page, which are built into the program.

mod table;

use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderValue};
use touchmark_client::hash_of;

use super::answer::{self, Response};
use table::FILES;

/// Content types by a name's extension. `nosniff` makes each of them final.
const TYPES: &[(&str, &str)] = &[
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("json", "application/json"),
    ("map", "application/json"),
    ("webmanifest", "application/manifest+json"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("ico", "image/x-icon"),
    ("woff2", "font/woff2"),
    ("txt", "text/plain; charset=utf-8"),
];

/// Answers a request for a file of the page. `/` is `index.html`; every other
/// name is looked up as it is.
pub(super) fn serve(path: &str, query: Option<&str>, headers: &HeaderMap) -> Response {
    let name = match path.strip_prefix('/') {
        Some("") => "index.html",
        Some(name) => name,
        None => "",
    };
    let file = FILES
        .iter()
        .find(|(own, _)| *own == name && query.is_none());
    let Some((name, content)) = file else {
        let hint = "the page and the program are of different versions: reload the page";
        return answer::error(StatusCode::NOT_FOUND, "there is no such file", hint);
    };
    let etag = format!("\"{}\"", hash_of(content));
    let known = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut response = if known.into_iter().any(|known| known == etag.as_str()) {
        answer::bytes(StatusCode::NOT_MODIFIED, content_type(name), &b""[..])
    } else {
        answer::bytes(StatusCode::OK, content_type(name), *content)
    };
    let headers = response.headers_mut();
    // The next version of touchmark may use the same port: the browser asks
    // each time whether its copy is current.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// Returns the content type of a file with this name.
fn content_type(name: &str) -> &'static str {
    let extension = name.rsplit('.').next().unwrap_or_default();
    let row = TYPES.iter().find(|(own, _)| *own == extension);
    row.map_or("application/octet-stream", |(_, content_type)| content_type)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;

    use super::*;

    const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/parts/ui");

    /// The names of all files below a directory, from there.
    fn names(directory: &Path, below: &str, found: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().into_string().unwrap());
            if entry.path().is_dir() {
                names(&entry.path(), &format!("{name}/"), found);
            } else {
                found.push(name);
            }
        }
    }

    #[test]
    fn the_table_is_the_directory() {
        let mut found = Vec::new();
        names(Path::new(DIRECTORY), "", &mut found);
        found.sort();
        if std::env::var_os("TOUCHMARK_BLESS").is_some() {
            let mut text = String::from(
                "//! Written by `TOUCHMARK_BLESS=1 cargo test -p touchmark-cli ui::assets`.\n\n\
                 /// The name and the content of each file of the page.\n\
                 #[rustfmt::skip]\n\
                 pub(super) const FILES: &[(&str, &[u8])] = &[\n",
            );
            for name in &found {
                let place = format!("../../../parts/ui/{name}");
                writeln!(text, "    ({name:?}, include_bytes!({place:?})),").unwrap();
            }
            text.push_str("];\n");
            let table = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ui/assets/table.rs");
            fs::write(table, text).unwrap();
            return;
        }
        let embedded: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(embedded, found, "the module says how the table is written");
        for (name, content) in FILES {
            let file = fs::read(Path::new(DIRECTORY).join(name)).unwrap();
            assert_eq!(file, *content, "{name}");
            assert_ne!(content_type(name), "application/octet-stream", "{name}");
        }
    }

    #[test]
    fn a_file_has_its_type_and_is_compared_by_its_etag() {
        let page = serve("/", None, &HeaderMap::new());
        assert_eq!(page.status(), StatusCode::OK);
        assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
        assert_eq!(page.headers()["cache-control"], "no-cache");
        let mut asked = HeaderMap::new();
        asked.insert(header::IF_NONE_MATCH, page.headers()["etag"].clone());
        let again = serve("/index.html", None, &asked);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    }

    #[test]
    fn nothing_but_the_table_is_served() {
        for (path, query) in [
            ("/../Cargo.toml", None),
            ("//index.html", None),
            ("/%69ndex.html", None),
            ("/INDEX.html", None),
            ("index.html", None),
            ("/", Some("x")),
        ] {
            let answer = serve(path, query, &HeaderMap::new());
            assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
        }
    }
}
