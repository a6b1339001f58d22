use std::{
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
};

use socket2::{Domain, Socket, Type};

use crate::error::{LocalnetError, Server};

/// A port that the operating system will hand to nobody else while this value lives.
///
/// Choosing a free port and binding it later leaves a moment in which a second localnet can be given the same one.
/// That would go unnoticed: surfpool's RPC server sets `SO_REUSEPORT`, so the kernel would deal the requests out
/// between both. On Linux a socket that is bound but not listening closes the gap: it keeps the port off the list of
/// free ones, and, having `SO_REUSEADDR` set, does not hinder a listener of the same process.
#[derive(Debug)]
pub(crate) struct ReservedPort {
    port: u16,
    _socket: Option<Socket>,
}

impl ReservedPort {
    /// Reserves `wanted`, or any free port if that is `None` or 0.
    pub(crate) fn reserve(server: Server, wanted: Option<u16>) -> Result<Self, LocalnetError> {
        let wanted = wanted.unwrap_or(0);
        bind(wanted).map_err(|source| match (wanted, source.kind()) {
            (0, _) => LocalnetError::FindPort { server, source },
            (port, io::ErrorKind::AddrInUse) => LocalnetError::PortInUse { server, port, source },
            (port, _) => LocalnetError::BindPort { server, port, source },
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

fn bind(port: u16) -> io::Result<ReservedPort> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    // On Windows the option means something else: it would let us take a port from its listener.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).into())?;
    let port = match socket.local_addr()?.as_socket() {
        Some(address) => address.port(),
        None => return Err(io::ErrorKind::AddrNotAvailable.into()),
    };
    Ok(ReservedPort {
        port,
        // Elsewhere two sockets may not be bound to one address at all, so the reservation ends here.
        _socket: cfg!(target_os = "linux").then_some(socket),
    })
}
