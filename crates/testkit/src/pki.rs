//! The keys of one API server, generated in memory and written as PEM files.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// A certificate authority and the directory of what it issued.
pub struct Pki {
    directory: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

/// The two files of one certificate.
pub struct Pair {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Pki {
    pub fn create(directory: PathBuf) -> anyhow::Result<Self> {
        fs::create_dir_all(&directory).context("creating the key directory")?;
        let mut parameters = named("prewarm test authority", None);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority = CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?;
        fs::write(directory.join("ca.crt"), authority.pem())?;
        Ok(Self { directory, authority })
    }

    /// The authority's certificate for clients in this process.
    pub fn authority_der(&self) -> Vec<u8> {
        self.authority.der().to_vec()
    }

    /// The authority's certificate as a file.
    pub fn authority_file(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    /// A server certificate for these addresses and names.
    pub fn server(&self, name: &str, hosts: &[&str]) -> anyhow::Result<Pair> {
        let mut parameters = named(name, None);
        let hosts = CertificateParams::new(hosts.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        parameters.subject_alt_names = hosts.subject_alt_names;
        self.issue(name, parameters, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A client certificate. Kubernetes reads the user from its common name and the group from its organization.
    pub fn client(&self, file: &str, user: &str, group: Option<&str>) -> anyhow::Result<Pair> {
        self.issue(file, named(user, group), ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// The keys that sign and verify service account tokens: (private, public). An elliptic curve is as good as RSA
    /// here and faster to generate.
    pub fn signing_keys(&self, file: &str) -> anyhow::Result<(PathBuf, PathBuf)> {
        let key = KeyPair::generate()?;
        Ok((self.write(file, "key", &key.serialize_pem())?, self.write(file, "pub", &key.public_key_pem())?))
    }

    fn issue(
        &self,
        file: &str,
        mut parameters: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> anyhow::Result<Pair> {
        parameters.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &self.authority)?;
        Ok(Pair {
            certificate: self.write(file, "crt", &certificate.pem())?,
            key: self.write(file, "key", &key.serialize_pem())?,
        })
    }

    fn write(&self, file: &str, extension: &str, pem: &str) -> anyhow::Result<PathBuf> {
        let path = self.directory.join(format!("{file}.{extension}"));
        fs::write(&path, pem).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }
}

fn named(common_name: &str, organization: Option<&str>) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        parameters.distinguished_name.push(DnType::OrganizationName, organization);
    }
    parameters
}
