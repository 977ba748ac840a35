//! The process at the other end of a connection, as the kernel has it.
//!
//! Any user of the machine can connect to a port of loopback, and browsers
//! send a host's cookies to all of its ports, also to one on which another
//! user listens. So a cookie alone does not prove who connects.

mod diag;

use std::fs;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use rustix::fd::AsFd;
use rustix::net::sockopt::set_tcp_user_timeout;
use rustix::process::geteuid;
use touchmark_client::proto::trust::Me;

/// How often the table is read. While it is read, connections are added and
/// removed, so that a row can be missing.
const LOOKS: usize = 3;

/// The tables of connections. A program may use an IPv6 socket for an IPv4
/// address.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// Returns whether the other end belongs to this user or to root. Where the
/// kernel does not show it, returns `true`: the cookie decides.
pub(super) fn is_own(peer: SocketAddr, here: SocketAddr) -> bool {
    let (SocketAddr::V4(peer), SocketAddr::V4(here)) = (peer, here) else {
        return false;
    };
    let me = Me::new(geteuid().as_raw());
    if let Ok(owner) = diag::owner(peer, here) {
        return owner.is_some_and(|owner| me.check_peer(owner).is_ok());
    }
    let (peer, here) = (written(peer), written(here));
    for _ in 0..LOOKS {
        let tables: Vec<String> = TABLES.iter().filter_map(|table| read(table).ok()).collect();
        if tables.is_empty() {
            return true;
        }
        let owner = tables.iter().find_map(|table| owner(table, &peer, &here));
        if let Some(owner) = owner {
            return me.check_peer(owner).is_ok();
        }
    }
    // The connection is closed already, so its owner is not known.
    false
}

fn read(table: &str) -> io::Result<String> {
    fs::read_to_string(table)
}

/// Returns the user of the socket with these ends. `None` if there is none, or
/// if no process has it open any more.
fn owner(table: &str, local: &str, remote: &str) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, from, to, _, _, _, _, user, _, inode, ..] = fields.as_slice() else {
            return None;
        };
        let found = from.ends_with(local) && to.ends_with(remote) && *inode != "0";
        found.then(|| user.parse().ok())?
    })
}

/// Returns an address of IPv4 as the tables have it: the bytes as a number of
/// this machine, and the port. The table of IPv6 has it at the end.
fn written(address: SocketAddrV4) -> String {
    let number = u32::from_ne_bytes(address.ip().octets());
    format!("{number:08X}:{:04X}", address.port())
}

/// Ends the connection if the other end accepts nothing for this time.
pub(super) fn give_up_after(connection: impl AsFd, time: Duration) {
    let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    // Without it, a client that reads nothing keeps its place longer.
    let _ = set_tcp_user_timeout(connection, milliseconds);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn this_process_is_own_and_a_closed_connection_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        let here = accepted.local_addr().unwrap();
        assert!(is_own(peer, here));
        let (SocketAddr::V4(from), SocketAddr::V4(to)) = (peer, here) else {
            unreachable!("both are of IPv4")
        };
        // Where the kernel has socket diagnostics, they agree with the tables.
        if let Ok(owner) = diag::owner(from, to) {
            assert_eq!(owner, Some(geteuid().as_raw()));
        }
        drop(client);
        assert!(!is_own(peer, here));
    }

    #[test]
    fn the_owner_is_read_from_the_row_of_the_other_end() {
        let row = |from: &str, to: &str, user: u32, inode: u32| {
            format!(
                "   0: {from} {to} 01 00000000:00000000 00:00000000 00000000  {user}        0 {inode} 1 0 20 4 30 10 -1\n"
            )
        };
        let (client, server) = ("0100007F:C350", "0100007F:1F90");
        let table = |rows: &[String]| format!("  sl  local_address ...\n{}", rows.concat());
        let accepted = row(server, client, 1000, 5);
        let own = row(client, server, 1001, 6);
        let both = table(&[accepted.clone(), own]);
        assert_eq!(owner(&both, client, server), Some(1001));
        assert_eq!(owner(&table(&[accepted]), client, server), None);
        let left = table(&[row(client, server, 0, 0)]);
        assert_eq!(owner(&left, client, server), None, "no process has it open");
        let mapped = "0000000000000000FFFF0000";
        let dual = table(&[row(
            &format!("{mapped}{client}"),
            &format!("{mapped}{server}"),
            7,
            8,
        )]);
        assert_eq!(owner(&dual, client, server), Some(7));
        assert_eq!(owner("", client, server), None);
    }
}
