//! The rules that documentation and messages cite by name, such as `SEEN-4`:
//! search this page for the name. The text is `docs/semantics.md` of
//! touchmark's repository. Its links to other documents lead somewhere only
//! there.
#![cfg_attr(doc, doc = include_str!("rules.md"))]
