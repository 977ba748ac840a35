//! Prints the records of a ring.
fn main() {
    let path = std::env::args_os().nth(1).map(std::path::PathBuf::from);
    let mut reader =
        touchmark_witness::Reader::open(&path.unwrap_or_default()).unwrap_or_else(|error| {
            eprintln!("{error}");
            std::process::exit(1)
        });
    while let Ok(Some((seq, record))) = reader.next() {
        println!("{seq} {record:?}");
    }
    println!("runs: {:?}", reader.runs());
}
