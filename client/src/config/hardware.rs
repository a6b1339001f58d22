//! Keys that never leave a hardware wallet.

use std::{
    sync::mpsc::{Sender, channel},
    thread,
};

use solana_address::Address;
use solana_derivation_path::DerivationPath;
use solana_remote_wallet::{
    locator::Locator,
    remote_keypair::{RemoteKeypair, generate_remote_keypair},
    remote_wallet::{RemoteWalletError, initialize_wallet_manager},
};
use solana_signature::Signature;
use solana_signer::{Signer, SignerError};

/// A key of a hardware wallet.
///
/// The wallet belongs to one thread, which whoever wants a signature asks, and waits for.
pub(super) struct HardwareSigner {
    address: Address,
    requests: Sender<Request>,
}

/// A message to sign, and where its signature goes.
type Request = (Vec<u8>, Sender<Result<Signature, SignerError>>);

impl HardwareSigner {
    /// Finds the wallet that a URI such as `usb://ledger?key=0` names.
    pub(super) fn find(uri: &str, path: DerivationPath) -> Result<Self, RemoteWalletError> {
        let (device, _) = uri.split_once('?').unwrap_or((uri, ""));
        let locator = Locator::new_from_path(device)?;
        let (requests, received) = channel::<Request>();
        let (found, is_found) = channel();
        thread::spawn(move || {
            // What the wallet is made of can't leave this thread.
            let keypair = match open(locator, path) {
                Ok(keypair) => keypair,
                Err(error) => return drop(found.send(Err(error))),
            };
            if found.send(Ok(keypair.pubkey)).is_err() {
                return;
            }
            for (message, signed) in received {
                // Whoever asked may have given up.
                let _ = signed.send(keypair.try_sign_message(&message));
            }
        });
        let address = is_found.recv().map_err(|_| RemoteWalletError::NoDeviceFound)??;
        Ok(Self { address, requests })
    }
}

fn open(locator: Locator, path: DerivationPath) -> Result<RemoteKeypair, RemoteWalletError> {
    let wallets = initialize_wallet_manager()?;
    wallets.update_devices()?;
    generate_remote_keypair(locator, path, &wallets, false, "keypair")
}

impl Signer for HardwareSigner {
    fn try_pubkey(&self) -> Result<Address, SignerError> {
        Ok(self.address)
    }

    fn try_sign_message(&self, message: &[u8]) -> Result<Signature, SignerError> {
        let gone = || SignerError::Connection("the hardware wallet is gone".to_owned());
        let (signed, is_signed) = channel();
        self.requests.send((message.to_vec(), signed)).map_err(|_| gone())?;
        is_signed.recv().map_err(|_| gone())?
    }

    fn is_interactive(&self) -> bool {
        true
    }
}
