//! The address of a socket that a process connects to, as far as another
//! process of this machine may be there.

/// The most bytes of an address that are read: `sockaddr_un` has 110.
pub(crate) const LONGEST: usize = 128;

/// Returns the address in a `sockaddr` as text: the path of a socket, with `@`
/// in front if it is in no directory, or `tcp:PORT` for a port of this machine.
/// `None` for what is on another machine, or is no such address.
pub(crate) fn here(address: &[u8]) -> Option<Vec<u8>> {
    let (family, rest) = address.split_first_chunk::<2>()?;
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_UNIX => {
            let is_abstract = rest.first() == Some(&0);
            let name = if is_abstract { &rest[1..] } else { rest };
            let end = name.iter().position(|byte| *byte == 0);
            let name = &name[..end.unwrap_or(name.len())];
            let mark: &[u8] = if is_abstract { b"@" } else { b"" };
            (!name.is_empty()).then(|| [mark, name].concat())
        }
        libc::AF_INET => {
            let (port, rest) = rest.split_first_chunk::<2>()?;
            let host = rest.first_chunk::<4>()?;
            (host[0] == 127 || *host == [0; 4]).then(|| tcp(*port))
        }
        libc::AF_INET6 => {
            let (port, rest) = rest.split_first_chunk::<2>()?;
            let host = rest.get(4..20)?;
            let (zeros, last) = host.split_at(12);
            let is_mapped = zeros.ends_with(&[0xff, 0xff]) && last[0] == 127;
            let is_own = zeros == [0; 12] && matches!(last, [0, 0, 0, 0 | 1]);
            (is_own || is_mapped).then(|| tcp(*port))
        }
        _ => None,
    }
}

fn tcp(port: [u8; 2]) -> Vec<u8> {
    format!("tcp:{}", u16::from_be_bytes(port)).into_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn address(family: i32, rest: &[u8]) -> Option<String> {
        let family = u16::try_from(family).unwrap().to_ne_bytes();
        let here = here(&[&family, rest].concat())?;
        Some(String::from_utf8(here).unwrap())
    }

    #[test]
    fn only_what_is_on_this_machine_has_an_address() {
        let unix = |path: &[u8]| address(libc::AF_UNIX, path);
        assert_eq!(unix(b"/run/x.sock\0\0").as_deref(), Some("/run/x.sock"));
        assert_eq!(unix(b"/run/x.sock").as_deref(), Some("/run/x.sock"));
        assert_eq!(unix(b"\0name").as_deref(), Some("@name"));
        assert_eq!(unix(b""), None);
        let inet = |host: [u8; 4]| address(libc::AF_INET, &[&[0x1f, 0x90][..], &host].concat());
        assert_eq!(inet([127, 0, 0, 1]).as_deref(), Some("tcp:8080"));
        assert_eq!(inet([0; 4]).as_deref(), Some("tcp:8080"));
        assert_eq!(inet([10, 0, 0, 1]), None);
        let inet6 = |host: std::net::Ipv6Addr| {
            let rest = [&[0, 80, 0, 0, 0, 0][..], &host.octets()].concat();
            address(libc::AF_INET6, &rest)
        };
        assert_eq!(inet6("::1".parse().unwrap()).as_deref(), Some("tcp:80"));
        let mapped = inet6("::ffff:127.0.0.1".parse().unwrap());
        assert_eq!(mapped.as_deref(), Some("tcp:80"));
        assert_eq!(inet6("2001:db8::1".parse().unwrap()), None);
        assert_eq!(address(libc::AF_NETLINK, &[0; 10]), None);
        assert_eq!(here(&[]), None);
    }
}
