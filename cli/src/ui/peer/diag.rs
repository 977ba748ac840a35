//! The owner of a socket, from the kernel's socket diagnostics (sock_diag(7)):
//! one lookup, however many connections there are. Reading the tables of
//! `/proc` takes milliseconds, so a flood of connections would stop the page.

use std::io;
use std::net::SocketAddrV4;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, sendto, socket_with};

/// The type of a request by addresses, and of its answer.
const BY_FAMILY: u16 = 20;

/// The type of an answer that is an error.
const ERROR: u16 = 2;

/// The length of a message's header, in bytes.
const HEADER: usize = 16;

/// The length of the request, with its header.
const REQUEST: usize = HEADER + 56;

/// Where the user's number stands in an answer, and after it the socket's
/// inode: behind the header, four bytes, the addresses and three numbers.
const USER: usize = HEADER + 4 + 48 + 12;

const IPV4: u8 = 2;
const TCP: u8 = 6;

/// Returns the user of the TCP socket with these ends. `None` if there is none,
/// or if no process has it open any more.
///
/// # Errors
/// The system's error if it has no socket diagnostics, or permits none.
pub(super) fn owner(local: SocketAddrV4, remote: SocketAddrV4) -> io::Result<Option<u32>> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    let request = request(local, remote);
    sendto(
        &socket,
        &request,
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )?;
    let mut answer = [0_u8; 1024];
    // The kernel has answered when `sendto` returns.
    let (count, _) = recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
    let answer = answer.get(..count).unwrap_or_default();
    let unknown = || io::Error::from(io::ErrorKind::InvalidData);
    match number(answer, 4).map(|kind| kind as u16) {
        Some(BY_FAMILY) => {
            let user = number(answer, USER).ok_or_else(unknown)?;
            let inode = number(answer, USER + 4).ok_or_else(unknown)?;
            Ok((inode != 0).then_some(user))
        }
        Some(ERROR) => {
            let code = number(answer, HEADER).ok_or_else(unknown)?;
            let error = io::Error::from_raw_os_error(code.wrapping_neg().cast_signed());
            match error.kind() {
                io::ErrorKind::NotFound => Ok(None),
                _ => Err(error),
            }
        }
        _ => Err(unknown()),
    }
}

fn request(local: SocketAddrV4, remote: SocketAddrV4) -> Vec<u8> {
    let mut out = Vec::with_capacity(REQUEST);
    out.extend((REQUEST as u32).to_ne_bytes());
    out.extend(BY_FAMILY.to_ne_bytes());
    // It is a request; its number and sender stay 0.
    out.extend(1_u16.to_ne_bytes());
    out.extend([0; 8]);
    out.extend([IPV4, TCP, 0, 0]);
    // Sockets of all states.
    out.extend(u32::MAX.to_ne_bytes());
    out.extend(local.port().to_be_bytes());
    out.extend(remote.port().to_be_bytes());
    for end in [local, remote] {
        out.extend(end.ip().octets());
        out.extend([0; 12]);
    }
    // Any interface, any cookie.
    out.extend([0; 4]);
    out.extend([0xff; 8]);
    out
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}
