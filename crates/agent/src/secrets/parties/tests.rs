use k8s_openapi::ByteString;
use kube::api::ObjectMeta;
use prewarm_api::reference_object::ObjectReference;

use super::*;

const CONFIG: &str = "kruise-daemon-config";

fn job(namespace: &str, name: &str) -> Beneficiary {
    Beneficiary::Job(ObjectReference {
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    })
}

fn shared(name: &str) -> SecretReference {
    SecretReference { mode: Some("batch".to_owned()), ..named(name) }
}

fn named(name: &str) -> SecretReference {
    SecretReference { namespace: Some(CONFIG.to_owned()), name: Some(name.to_owned()), mode: None }
}

/// A Secret of the config namespace that lists these jobs, with one login for the registry.
fn secret(name: &str, served: Option<&str>, user: &str) -> Secret {
    let config = format!(r#"{{"auths":{{"reg.example":{{"username":"{user}","password":"p"}}}}}}"#);
    Secret {
        metadata: ObjectMeta {
            namespace: Some(CONFIG.to_owned()),
            name: Some(name.to_owned()),
            annotations: served
                .map(|served| [(SECRET_REFERENCES_ANNOTATION.to_owned(), served.to_owned())].into()),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/dockerconfigjson".to_owned()),
        data: Some([(".dockerconfigjson".to_owned(), ByteString(config.into_bytes()))].into()),
        ..Secret::default()
    }
}

fn request(secrets: &[SecretReference], beneficiaries: Vec<Beneficiary>) -> CredentialRequest {
    CredentialRequest {
        image: "reg.example/app:1".parse().unwrap(),
        secrets: secrets.to_vec(),
        beneficiaries,
    }
}

/// The parties: members, users, problems.
fn parties(beneficiaries: Vec<Beneficiary>, answers: &[Answer]) -> Vec<(Vec<usize>, Vec<String>, usize)> {
    let found = found(&request(&[], beneficiaries), answers);
    let users = |party: &Party| party.credentials.iter().map(|one| one.username.clone()).collect();
    found.parties.iter().map(|party| (party.members.clone(), users(party), party.problems.len())).collect()
}

fn users(users: &[&str]) -> Vec<String> {
    users.iter().map(|&user| user.to_owned()).collect()
}

#[test]
fn a_copy_serves_the_jobs_that_it_lists_and_nobody_else() {
    let answers = [
        Answer::new(shared("one"), Ok(secret("one", Some("red/a,red/b"), "red"))),
        Answer::new(shared("two"), Ok(secret("two", Some("blue/a"), "blue"))),
        Answer::new(shared("three"), Ok(secret("three", Some(""), "nobody"))),
    ];
    let everybody = vec![job("red", "a"), job("green", "a"), job("blue", "a"), job("red", "b")];
    let expected =
        [(vec![0, 3], users(&["red"]), 0), (vec![2], users(&["blue"]), 0), (vec![1], users(&[]), 0)];
    assert_eq!(parties(everybody, &answers), expected);
}

#[test]
fn a_secret_that_lists_nobody_serves_the_jobs_of_its_namespace() {
    let answers = [Answer::new(named("plain"), Ok(secret("plain", None, "plain")))];
    let beneficiaries = vec![job(CONFIG, "a"), job("red", "a"), Beneficiary::Job(ObjectReference::default())];
    let expected = [(vec![0], users(&["plain"]), 0), (vec![1, 2], users(&[]), 0)];
    assert_eq!(parties(beneficiaries, &answers), expected);
}

#[test]
fn a_person_is_served_by_what_a_person_named_and_not_by_what_jobs_brought() {
    let answers = [
        Answer::new(named("mine"), Ok(secret("mine", Some("red/a"), "mine"))),
        Answer::new(shared("two"), Ok(secret("two", Some("blue/a"), "blue"))),
    ];
    assert_eq!(parties(vec![Beneficiary::Person], &answers), [(vec![0], users(&["mine"]), 0)]);
}

#[test]
fn what_cannot_be_read_is_told_to_whom_its_name_belongs_and_to_nobody_else() {
    // The name that a copy of the Secret `regcred` of the namespace `team` has.
    let own = shared("regcred-fbcc9d");
    let answers = [
        Answer::new(own, Err("secret regcred-fbcc9d does not exist".to_owned())),
        Answer::new(shared("theirs-000000"), Err("secret theirs-000000 does not exist".to_owned())),
    ];
    let expected = [(vec![0], users(&[]), 1), (vec![1], users(&[]), 0)];
    assert_eq!(parties(vec![job("team", "a"), job("red", "a")], &answers), expected);
}

#[test]
fn own_secrets_are_read_however_many_others_an_image_has() {
    let mut references: Vec<SecretReference> = (0..500).map(|n| shared(&format!("other-{n:06x}"))).collect();
    references.push(shared("regcred-fbcc9d"));
    let request = request(&references, vec![job("team", "a")]);
    let chosen = chosen(&request);
    assert_eq!(chosen.len(), 65);
    assert_eq!(chosen[0].name.as_deref(), Some("regcred-fbcc9d"));
}

#[test]
fn namespaces_take_turns_and_whoever_has_nothing_comes_last() {
    let answers = [
        Answer::new(shared("1"), Ok(secret("1", Some("red/a"), "r1"))),
        Answer::new(shared("2"), Ok(secret("2", Some("red/b"), "r2"))),
        Answer::new(shared("3"), Ok(secret("3", Some("red/c"), "r3"))),
        Answer::new(shared("4"), Ok(secret("4", Some("blue/a"), "b1"))),
    ];
    let everybody =
        vec![job("green", "a"), job("red", "a"), job("red", "b"), job("red", "c"), job("blue", "a")];
    let order: Vec<Vec<usize>> =
        parties(everybody, &answers).into_iter().map(|(members, ..)| members).collect();
    assert_eq!(order, [vec![1], vec![4], vec![2], vec![3], vec![0]]);
}
