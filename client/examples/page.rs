//! Reads a file, lists what others changed, and edits the file.

use touchmark_client::{Session, connect};

fn main() -> Result<(), touchmark_client::Error> {
    let session = Session::open(&connect()?, "fix-42")?;
    let before = session.read_text("src/parser.rs")?.text.unwrap_or_default();
    for change in session.changed()? {
        println!("{} was changed by {:?}", change.path, change.changed_by);
    }
    // Begins an edit. It is refused if the copy is stale.
    let edit = session.edit("src/parser.rs")?;
    // Writes and commits. A save in between is not overwritten. An edit that is
    // dropped instead is aborted.
    let written = edit.write(before.replace("10", "20").as_bytes())?;
    println!("{:?}", written.outcome);
    session.close()
}
