//! A small HTTP client, by hand: it sends what a browser would never send.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use serde_json::Value;

use crate::wire::PATIENCE;

/// A request to a server on 127.0.0.1.
#[derive(Clone, Debug)]
pub struct Request {
    port: u16,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// A request with the header `Host` of that server alone.
    pub fn new(port: u16, method: &str, target: &str) -> Self {
        let request = Self {
            port,
            method: method.into(),
            target: target.into(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        request.with("Host", &format!("127.0.0.1:{port}"))
    }

    /// The request with this header, which replaces one of the same name.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(own, _)| own != name);
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The request without this header.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(own, _)| own != name);
        self
    }

    /// The request with this body, whose length is announced.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.with("Content-Length", &length)
    }

    /// Sends it, and reads the head of the answer.
    ///
    /// # Errors
    /// As the system says: for example, the server has closed the connection.
    pub fn begin(&self) -> std::io::Result<Answer> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("Connection: close\r\n\r\n");
        (&stream).write_all(head.as_bytes())?;
        // A server that refuses a body may close before it has read all of it.
        let _closed = (&stream).write_all(&self.body);
        Answer::read(stream)
    }

    /// Sends it, and reads the whole answer.
    pub fn send(&self) -> Answer {
        let read = self.begin().and_then(|mut answer| {
            answer.finish()?;
            Ok(answer)
        });
        read.unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }
}

/// An answer, as far as it was read.
#[derive(Debug)]
pub struct Answer {
    /// The number in its first line.
    pub status: u16,
    /// Its headers, the names in small letters.
    pub headers: Vec<(String, String)>,
    /// What was read of the body.
    pub body: Vec<u8>,
    stream: BufReader<TcpStream>,
}

impl Answer {
    fn read(stream: TcpStream) -> std::io::Result<Self> {
        let mut stream = BufReader::new(stream);
        let first = line(&mut stream)?;
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| std::io::Error::other(format!("no HTTP: {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = line(&mut stream)?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Self {
            status,
            headers,
            body: Vec::new(),
            stream,
        })
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn finish(&mut self) -> std::io::Result<()> {
        if self.header("transfer-encoding") == Some("chunked") {
            while self.chunk()? {}
            return Ok(());
        }
        let length = self.header("content-length").map(str::parse);
        let mut body = vec![0; length.and_then(Result::ok).unwrap_or(0)];
        self.stream.read_exact(&mut body)?;
        self.body = body;
        Ok(())
    }

    /// Reads one piece of a body that comes in pieces; `false` after the last.
    fn chunk(&mut self) -> std::io::Result<bool> {
        let size = line(&mut self.stream)?;
        let size = usize::from_str_radix(&size, 16).map_err(std::io::Error::other)?;
        let mut piece = vec![0; size + 2];
        self.stream.read_exact(&mut piece)?;
        self.body.extend_from_slice(&piece[..size]);
        Ok(size > 0)
    }

    /// The next server-sent event that is no comment, as its fields `id`,
    /// `event` and `data`.
    pub fn event(&mut self) -> Event {
        loop {
            let text = self.text();
            if let Some((message, _)) = text.split_once("\n\n") {
                self.body.drain(..message.len() + 2);
                let field = |name: &str| {
                    let mut lines = message.lines();
                    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                };
                let Some(data) = field("data") else {
                    continue;
                };
                return Event {
                    id: field("id").map(str::to_owned),
                    kind: field("event").unwrap_or_default().to_owned(),
                    data: serde_json::from_str(data).expect("JSON"),
                };
            }
            let more = self.chunk();
            assert!(matches!(more, Ok(true)), "the stream ended: {more:?}");
        }
    }
}

/// A server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// From which to continue.
    pub id: Option<String>,
    /// Its name.
    pub kind: String,
    /// What it is about.
    pub data: Value,
}

/// A line without its end.
fn line(stream: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}
