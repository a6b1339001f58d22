//! Keypairs, from wherever Solana's tools take them.

use std::{convert::Infallible, fmt, path::PathBuf, str::FromStr};

use solana_derivation_path::DerivationPath;
use solana_keypair::{Keypair, keypair_from_seed, seed_derivable::keypair_from_seed_and_derivation_path};
use solana_seed_phrase::generate_seed_from_seed_phrase_and_passphrase;

use super::ConfigError;
use crate::engine::SharedSigner;

/// Where a keypair comes from, as Solana's tools write it.
///
/// ```
/// use committor_client::config::KeypairSource;
///
/// assert!(matches!("id.json".parse(), Ok(KeypairSource::File(_))));
/// assert!(matches!("-".parse(), Ok(KeypairSource::Stdin)));
/// assert!(matches!("prompt://?key=0/0".parse(), Ok(KeypairSource::Phrase { .. })));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeypairSource {
    /// A file: a JSON array of 64 bytes. Also `file:PATH`.
    File(PathBuf),
    /// The same on stdin: `-` or `stdin:`.
    Stdin,
    /// A seed phrase that the user types.
    Phrase {
        /// `prompt:`, with what it has after `?`; `None` for `ASK`, which derives nothing.
        path: Option<String>,
    },
    /// A hardware wallet: `usb:`.
    Hardware(String),
}

impl FromStr for KeypairSource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let rest = |scheme: &str| {
            let rest = text.strip_prefix(scheme)?.strip_prefix(':')?;
            Some(rest.strip_prefix("//").unwrap_or(rest).to_owned())
        };
        Ok(match text {
            "-" => Self::Stdin,
            "ASK" => Self::Phrase { path: None },
            _ if rest("stdin").is_some() => Self::Stdin,
            _ if rest("usb").is_some() => Self::Hardware(text.to_owned()),
            _ => match (rest("prompt"), rest("file")) {
                (Some(query), _) => Self::Phrase { path: Some(query) },
                (None, Some(path)) => Self::File(path.into()),
                (None, None) => Self::File(text.into()),
            },
        })
    }
}

impl fmt::Display for KeypairSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Stdin => f.write_str("stdin"),
            Self::Phrase { path: None } => f.write_str("ASK"),
            Self::Phrase { path: Some(query) } => write!(f, "prompt://{query}"),
            Self::Hardware(uri) => f.write_str(uri),
        }
    }
}

impl KeypairSource {
    /// Reads a keypair file.
    ///
    /// # Errors
    /// [`ConfigError::Keypair`] if it is missing, something else, or no file is meant.
    pub fn read(&self) -> Result<Keypair, ConfigError> {
        let Self::File(path) = self else {
            return Err(self.fail(match self {
                Self::Hardware(_) => "a hardware wallet keeps its keys",
                _ => "expected a file",
            }));
        };
        let text = std::fs::read_to_string(path).map_err(|error| {
            self.fail(match error.kind() {
                std::io::ErrorKind::NotFound => "no such file",
                std::io::ErrorKind::PermissionDenied => "permission denied",
                _ => "the file can't be read",
            })
        })?;
        self.parse(&text)
    }

    /// The keypair in a text as Solana's tools write it: a JSON array of 64 bytes.
    ///
    /// # Errors
    /// [`ConfigError::Keypair`] if it is something else.
    pub fn parse(&self, text: &str) -> Result<Keypair, ConfigError> {
        let bytes: Vec<u8> =
            serde_json::from_str(text).map_err(|_| self.fail("expected a JSON array of 64 numbers"))?;
        Keypair::try_from(bytes.as_slice())
            .map_err(|_| self.fail("the 64 bytes are not a secret key and its public key"))
    }

    /// The keypair of a seed phrase, derived as Solana's tools do: at `m/44'/501'` for `prompt://`, at what comes after
    /// `?key=` or `?full-path=`, and not at all for `ASK`.
    ///
    /// # Errors
    /// [`ConfigError::Keypair`] if it is no seed phrase or no derivation path.
    pub fn derive(&self, phrase: &str, passphrase: &str) -> Result<Keypair, ConfigError> {
        let Self::Phrase { path } = self else { return Err(self.fail("no seed phrase was asked for")) };
        let phrase = phrase.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        // The words have a checksum, so that a typing error does not lead to an empty wallet.
        bip39::Mnemonic::parse_in(bip39::Language::English, &phrase).map_err(|_| {
            self.fail("not a seed phrase of 12 to 24 English words, or its checksum is wrong")
        })?;
        let seed = generate_seed_from_seed_phrase_and_passphrase(&phrase, passphrase);
        let keypair = match path {
            None => keypair_from_seed(&seed),
            Some(query) => keypair_from_seed_and_derivation_path(&seed, self.derivation(query)?),
        };
        keypair.map_err(|_| self.fail("no keypair can be derived"))
    }

    /// The key of a hardware wallet, which has to be plugged in and unlocked.
    ///
    /// # Errors
    /// [`ConfigError::Keypair`] if there is none, or if this is a build without the feature `hardware-wallets`.
    #[cfg(feature = "hardware-wallets")]
    pub fn wallet(&self) -> Result<SharedSigner, ConfigError> {
        let Self::Hardware(uri) = self else { return Err(self.fail("expected usb://")) };
        let query = uri.find('?').map_or("", |at| &uri[at..]);
        let path = self.derivation(query)?.unwrap_or_default();
        match super::hardware::HardwareSigner::find(uri, path) {
            Ok(signer) => Ok(std::sync::Arc::new(signer)),
            Err(error) => Err(ConfigError::Wallet { name: uri.clone(), source: Box::new(error) }),
        }
    }

    /// The key of a hardware wallet, which has to be plugged in and unlocked.
    ///
    /// # Errors
    /// [`ConfigError::Keypair`]: this is a build without the feature `hardware-wallets`.
    #[cfg(not(feature = "hardware-wallets"))]
    pub fn wallet(&self) -> Result<SharedSigner, ConfigError> {
        Err(self.fail("this build knows no hardware wallets (cargo's feature `hardware-wallets`)"))
    }

    fn derivation(&self, query: &str) -> Result<Option<DerivationPath>, ConfigError> {
        let wrong = || self.fail("expected `?key=ACCOUNT[/CHANGE]` or `?full-path=m/44'/501'/…`");
        let query = query.trim_start_matches('/');
        match query.strip_prefix('?').and_then(|query| query.split_once('=')) {
            None if query.is_empty() => Ok(None),
            Some(("key", path)) => DerivationPath::from_key_str(path).map(Some).map_err(|_| wrong()),
            Some(("full-path", path)) => {
                DerivationPath::from_absolute_path_str(path).map(Some).map_err(|_| wrong())
            }
            _ => Err(wrong()),
        }
    }

    /// An error about this keypair; never with any of its content.
    pub fn fail(&self, reason: &'static str) -> ConfigError {
        ConfigError::Keypair { source_name: self.to_string(), reason }
    }
}

#[cfg(test)]
mod tests {
    use solana_signer::Signer;

    use super::*;

    const PHRASE: &str = "pill tomorrow foster begin walnut borrow virtual kick shift mutual shoe scatter";

    #[test]
    fn sources_are_told_apart_and_named_as_they_were_written() {
        let file = |path: &str| KeypairSource::File(path.into());
        let phrase = |path: &str| KeypairSource::Phrase { path: Some(path.to_owned()) };
        for (text, source) in [
            ("id.json", file("id.json")),
            ("/home/a b/id.json", file("/home/a b/id.json")),
            ("file:///id.json", file("/id.json")),
            ("-", KeypairSource::Stdin),
            ("stdin://", KeypairSource::Stdin),
            ("ASK", KeypairSource::Phrase { path: None }),
            ("prompt:", phrase("")),
            ("prompt://", phrase("")),
            ("prompt://?key=1/2", phrase("?key=1/2")),
            ("usb://ledger?key=0", KeypairSource::Hardware("usb://ledger?key=0".to_owned())),
            ("prompt", file("prompt")),
        ] {
            assert_eq!(text.parse(), Ok(source), "{text}");
        }
    }

    #[test]
    fn a_bad_keypair_file_is_named_and_never_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("id.json");
        let source = KeypairSource::File(path.clone());
        for content in ["", "[1,2,3]", "secret words", "{}"] {
            std::fs::write(&path, content).unwrap();
            let error = source.read().unwrap_err().to_string();
            assert!(error.contains(path.to_str().unwrap()), "{error}");
            assert!(content.is_empty() || !error.contains(content), "{error}");
        }
        let missing = KeypairSource::File(folder.path().join("none")).read().unwrap_err();
        assert!(missing.to_string().ends_with("no such file"), "{missing}");
        assert!(missing.hint().unwrap().contains("--keypair"));
    }

    #[test]
    fn a_wallet_that_is_not_there_is_named() {
        let source: KeypairSource = "usb://ledger?key=0".parse().unwrap();
        let error = source.wallet().err().unwrap();
        assert!(error.to_string().contains("usb://ledger?key=0"), "{error}");
        assert!(error.hint().is_some());
    }

    #[test]
    fn a_phrase_gives_the_keys_that_other_wallets_derive_from_it() {
        let key = |source: &str, phrase: &str, passphrase: &str| {
            let source: KeypairSource = source.parse().unwrap();
            source.derive(phrase, passphrase).map(|keypair| keypair.pubkey().to_string())
        };
        // Computed from BIP 39, SLIP 10 and RFC 8032 by other code.
        let derived = key("prompt://?key=0/0", PHRASE, "").unwrap();
        assert_eq!(derived, "5F86TNSTre3CYwZd1wELsGQGhqG2HkN3d8zxhbyBSnzm");
        assert_eq!(key("prompt://?full-path=m/44'/501'/0'/0'", PHRASE, "").unwrap(), derived);
        assert_eq!(key("prompt://", PHRASE, "").unwrap(), "5Ra911yxjEZZsivku9qjew3VsHCmRckUyFTmmV9zXipe");
        assert_eq!(key("ASK", PHRASE, "").unwrap(), "5ZWj7a1f8tWkjBESHKgrLmXshuXxqeY9SYcfbshpAqPG");
        // White space and capitals are the writer's own.
        assert_eq!(key("prompt://?key=0/0", &format!("  {}\n", PHRASE.to_uppercase()), "").unwrap(), derived);
        assert_ne!(key("prompt://?key=1/0", PHRASE, "").unwrap(), derived);
        assert_ne!(key("prompt://?key=0/0", PHRASE, "more").unwrap(), derived);
        let typing_error = PHRASE.replace("pill", "pilot");
        assert!(key("ASK", &typing_error, "").unwrap_err().to_string().contains("checksum"));
        assert!(!key("ASK", "secret words", "").unwrap_err().to_string().contains("secret"));
        assert!(key("prompt://?index=1", PHRASE, "").unwrap_err().to_string().contains("?key="));
    }
}
