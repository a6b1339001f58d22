//! A long and lossy way for datagrams.

use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::{
    net::UdpSocket,
    sync::mpsc::{UnboundedSender, unbounded_channel},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// The largest datagram.
const MAX_DATAGRAM: usize = 65_535;

/// Passes datagrams between whoever sends some and one address, each later by half of a round trip, and loses some.
/// Dropping it ends it.
pub struct UdpRelay {
    address: SocketAddr,
    cancelled: CancellationToken,
}

impl UdpRelay {
    /// Listens on a free port of 127.0.0.1 and passes on to `target`.
    ///
    /// # Errors
    /// Those of listening.
    pub async fn start(
        target: SocketAddr,
        round_trip: Duration,
        loss: f64,
        seed: u64,
    ) -> std::io::Result<Self> {
        let socket = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?);
        let address = socket.local_addr()?;
        let cancelled = CancellationToken::new();
        let way = Way { delay: round_trip / 2, loss, cancelled: cancelled.clone() };
        tokio::spawn(cancelled.clone().run_until_cancelled_owned(outward(socket, target, way, seed)));
        Ok(Self { address, cancelled })
    }

    /// Where to send to.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for UdpRelay {
    fn drop(&mut self) {
        self.cancelled.cancel();
    }
}

#[derive(Clone)]
struct Way {
    delay: Duration,
    loss: f64,
    cancelled: CancellationToken,
}

impl Way {
    /// What is given to it arrives at `to` in the same order, later, unless it is lost.
    fn begin(&self, from: Arc<UdpSocket>, to: SocketAddr, seed: u64) -> UnboundedSender<(Instant, Vec<u8>)> {
        let (sender, mut receiver) = unbounded_channel::<(Instant, Vec<u8>)>();
        let (delay, loss) = (self.delay, self.loss);
        let mut chances = StdRng::seed_from_u64(seed);
        let carry = async move {
            while let Some((at, datagram)) = receiver.recv().await {
                if chances.random_bool(loss) {
                    continue;
                }
                sleep_until(at + delay).await;
                // A datagram that can't be sent is one that is lost.
                let _ = from.send_to(&datagram, to).await;
            }
        };
        tokio::spawn(self.cancelled.clone().run_until_cancelled_owned(carry));
        sender
    }
}

/// From senders to the target. Each sender has a socket of its own, so that the answers find back.
async fn outward(socket: Arc<UdpSocket>, target: SocketAddr, way: Way, seed: u64) -> std::io::Result<()> {
    let mut ways: HashMap<SocketAddr, UnboundedSender<(Instant, Vec<u8>)>> = HashMap::new();
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        // An error is about a datagram that did not arrive.
        let Ok((len, from)) = socket.recv_from(&mut buffer).await else { continue };
        let number = seed.wrapping_add(2 * ways.len() as u64);
        let outward = match ways.get(&from) {
            Some(outward) => outward,
            None => {
                let own = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?);
                let back = way.begin(socket.clone(), from, number);
                tokio::spawn(way.cancelled.clone().run_until_cancelled_owned(homeward(own.clone(), back)));
                ways.entry(from).or_insert_with(|| way.begin(own, target, number + 1))
            }
        };
        // The receiver ends with the relay alone.
        let _ = outward.send((Instant::now(), buffer[..len].to_vec()));
    }
}

/// From the target back to one sender.
async fn homeward(own: Arc<UdpSocket>, back: UnboundedSender<(Instant, Vec<u8>)>) {
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        let Ok((len, _)) = own.recv_from(&mut buffer).await else { continue };
        if back.send((Instant::now(), buffer[..len].to_vec())).is_err() {
            return;
        }
    }
}
