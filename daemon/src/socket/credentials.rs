//! Who may connect: the daemon's own user, and root (SEC-1).

use touchmark_proto::codec::{Encoder, MAX_FRAME, MessageId, ServerMessage, Wire};
use touchmark_proto::{Error, ErrorCode, ErrorData};

use super::stream::{Stream, users};

/// Checks the user at the other end, as the kernel reports it.
///
/// # Errors
/// `denied`.
pub fn check(stream: &Stream) -> Result<(), Error> {
    match users(stream) {
        Ok((peer, me)) => allowed(peer, me),
        Err(cause) => Err(Error::new(
            ErrorCode::Denied,
            format!("the system does not say who connects: {cause}"),
        )),
    }
}

fn allowed(peer: u32, me: u32) -> Result<(), Error> {
    if peer == me || peer == 0 {
        return Ok(());
    }
    let message = format!("this daemon serves user {me}, not user {peer}");
    Err(Error::new(ErrorCode::Denied, message).with(ErrorData {
        peer: Some(peer),
        ..ErrorData::default()
    }))
}

/// Sends one line with an error, whatever the client's wire is, and closes the
/// connection.
pub fn refuse(stream: Stream, error: Error) {
    // The send buffer of a new connection is empty, so it has room for one
    // line.
    let _peer_is_gone = stream.try_write(&error_line(error));
}

/// Returns an error as one line of JSON.
pub(super) fn error_line(error: Error) -> Vec<u8> {
    let mut line = Vec::new();
    let encoder = Encoder::new(Wire::Lines, MAX_FRAME, Vec::new());
    let message = ServerMessage::error(MessageId::Null, error);
    let _fits = encoder.encode(&message, &mut line);
    line
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_user_and_root_and_nobody_else() {
        allowed(1000, 1000).unwrap();
        allowed(0, 1000).unwrap();
        let error = allowed(1001, 1000).unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied);
        assert_eq!(error.data.peer, Some(1001));
        assert!(allowed(1000, 0).is_err());
    }
}
