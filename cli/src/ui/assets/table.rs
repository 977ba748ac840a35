//! Written by `TOUCHMARK_BLESS=1 cargo test -p touchmark-cli ui::assets`.

/// The name and the content of each file of the page.
#[rustfmt::skip]
pub(super) const FILES: &[(&str, &[u8])] = &[
    ("app.css", include_bytes!("../../../parts/ui/app.css")),
    ("app.js", include_bytes!("../../../parts/ui/app.js")),
    ("chunks/chunk-1.js", include_bytes!("../../../parts/ui/chunks/chunk-1.js")),
    ("chunks/chunk-2.js", include_bytes!("../../../parts/ui/chunks/chunk-2.js")),
    ("chunks/chunk-3.js", include_bytes!("../../../parts/ui/chunks/chunk-3.js")),
    ("chunks/clike.js", include_bytes!("../../../parts/ui/chunks/clike.js")),
    ("chunks/dist-1.js", include_bytes!("../../../parts/ui/chunks/dist-1.js")),
    ("chunks/dist-2.js", include_bytes!("../../../parts/ui/chunks/dist-2.js")),
    ("chunks/dist-3.js", include_bytes!("../../../parts/ui/chunks/dist-3.js")),
    ("chunks/dist-4.js", include_bytes!("../../../parts/ui/chunks/dist-4.js")),
    ("chunks/dist-5.js", include_bytes!("../../../parts/ui/chunks/dist-5.js")),
    ("chunks/dist-6.js", include_bytes!("../../../parts/ui/chunks/dist-6.js")),
    ("chunks/dist-7.js", include_bytes!("../../../parts/ui/chunks/dist-7.js")),
    ("chunks/dist-8.js", include_bytes!("../../../parts/ui/chunks/dist-8.js")),
    ("chunks/dist-9.js", include_bytes!("../../../parts/ui/chunks/dist-9.js")),
    ("chunks/editor.js", include_bytes!("../../../parts/ui/chunks/editor.js")),
    ("chunks/shell.js", include_bytes!("../../../parts/ui/chunks/shell.js")),
    ("chunks/toml.js", include_bytes!("../../../parts/ui/chunks/toml.js")),
    ("icon.svg", include_bytes!("../../../parts/ui/icon.svg")),
    ("index.html", include_bytes!("../../../parts/ui/index.html")),
    ("licenses.txt", include_bytes!("../../../parts/ui/licenses.txt")),
];
