use super::*;

const OCI_INDEX: &str = INDEXES[0];
const OCI_MANIFEST: &str = MANIFESTS[0];

fn digest(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

fn part(media_type: &str, digit: char, size: u64) -> String {
    format!(r#"{{"mediaType":"{media_type}","digest":"{}","size":{size}}}"#, digest(digit))
}

fn image_of(config: &str, layers: &[String]) -> String {
    format!(r#"{{"schemaVersion":2,"config":{config},"layers":[{}]}}"#, layers.join(","))
}

fn index_of(entries: &[(char, &str)]) -> String {
    let entry = |(digit, platform): &(char, &str)| {
        let platform = match platform.split_once('/') {
            Some((os, architecture)) => {
                format!(r#","platform":{{"os":"{os}","architecture":"{architecture}"}}"#)
            }
            None => String::new(),
        };
        let digest = digest(*digit);
        format!(r#"{{"mediaType":"{OCI_MANIFEST}","digest":"{digest}","size":500{platform}}}"#)
    };
    let entries: Vec<String> = entries.iter().map(entry).collect();
    format!(r#"{{"mediaType":"{OCI_INDEX}","manifests":[{}]}}"#, entries.join(","))
}

fn index(text: &str) -> Index {
    match Document::read(text.as_bytes(), None).unwrap() {
        Document::Index(index) => index,
        Document::Image(image) => panic!("{image:?}"),
    }
}

fn refusal(text: &str, announced: Option<&str>) -> ContentError {
    Document::read(text.as_bytes(), announced).unwrap_err()
}

#[test]
fn of_an_index_the_best_fit_for_the_platform_is_chosen() {
    let entries = [('a', "linux/arm64"), ('b', "linux/386"), ('c', "linux/amd64"), ('d', "linux/amd64")];
    let index = index(&index_of(&entries));
    let chosen = |architecture| {
        index.choose(&Platform::new("linux", architecture, "")).map(|entry| entry.digest.to_string())
    };
    assert_eq!(chosen("amd64"), Ok(digest('c')));
    assert_eq!(chosen("arm64"), Ok(digest('a')));
    let none = chosen("s390x").unwrap_err();
    assert_eq!(none.class(), FailureClass::NoPlatform);
    assert!(none.to_string().contains("linux/s390x"), "{none}");
}

#[test]
fn an_entry_without_a_platform_is_the_last_resort_and_an_attestation_is_none() {
    let amd64 = Platform::new("linux", "amd64", "");
    let with = index(&index_of(&[('a', ""), ('b', "unknown/unknown"), ('c', "linux/amd64")]));
    assert_eq!(with.choose(&amd64).unwrap().digest.as_str(), digest('c'));
    let without = index(&index_of(&[('a', ""), ('b', "unknown/unknown")]));
    assert_eq!(without.choose(&amd64).unwrap().digest.as_str(), digest('a'));
    let attestation = index(&index_of(&[('b', "unknown/unknown")]));
    assert!(attestation.choose(&amd64).is_err());
}

#[test]
fn an_image_lists_its_config_and_each_layer_once() {
    let layers = [part(LAYERS[1], 'a', 10), part(LAYERS[1], 'b', 20), part(LAYERS[1], 'a', 10)];
    let read = Document::read(image_of(&part(CONFIGS[0], 'c', 5), &layers).as_bytes(), None).unwrap();
    let Document::Image(image) = read else { panic!("{read:?}") };
    assert_eq!(image.media_type, OCI_MANIFEST);
    assert_eq!(image.layers.len(), 3);
    let parts: Vec<u64> = image.parts().iter().map(|part| part.size).collect();
    assert_eq!(parts, [5, 10, 20]);
}

#[test]
fn the_announced_media_type_counts_where_the_manifest_says_nothing() {
    let text = image_of(&part(CONFIGS[1], 'c', 5), &[part(LAYERS[4], 'a', 10)]);
    for (announced, settled) in
        [(Some(MANIFESTS[1]), MANIFESTS[1]), (Some("application/json"), OCI_MANIFEST), (None, OCI_MANIFEST)]
    {
        assert_eq!(Document::read(text.as_bytes(), announced).unwrap().media_type(), settled);
    }
    let contradiction = refusal(&text, Some(OCI_INDEX));
    assert_eq!(contradiction.class(), FailureClass::Corrupt);
    assert!(matches!(refusal(&index_of(&[]), Some(INDEXES[1])), ContentError::Contradiction { .. }));
}

#[test]
fn what_a_node_cannot_run_is_refused_by_its_kind() {
    let (config, layer) = (part(CONFIGS[0], 'c', 5), part(LAYERS[1], 'a', 10));
    let helm = part("application/vnd.cncf.helm.config.v1+json", 'c', 5);
    let foreign = part("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", 'a', 10);
    let locked = part("application/vnd.oci.image.layer.v1.tar+gzip+encrypted", 'a', 10);
    for text in [
        image_of(&helm, std::slice::from_ref(&layer)),
        image_of(&config, &[foreign]),
        image_of(&config, &[locked]),
        format!(r#"{{"mediaType":"application/x-else","config":{config},"layers":[]}}"#),
        r#"{"schemaVersion":1,"fsLayers":[]}"#.to_owned(),
        "{}".to_owned(),
    ] {
        assert_eq!(refusal(&text, None).class(), FailureClass::InvalidReference, "{text}");
    }
}

#[test]
fn what_cannot_be_is_refused_as_corrupt() {
    let (config, layer) = (part(CONFIGS[0], 'c', 5), part(LAYERS[1], 'a', 10));
    let huge = part(LAYERS[1], 'b', MAX_TOTAL);
    let many: Vec<String> = (0..=MAX_LAYERS).map(|_| layer.clone()).collect();
    let both = format!(r#"{{"manifests":[],"config":{config},"layers":[]}}"#);
    for text in [
        image_of(&part(CONFIGS[0], 'c', MAX_CONFIG + 1), std::slice::from_ref(&layer)),
        image_of(&config, &[part(LAYERS[1], 'a', u64::MAX)]),
        image_of(&config, &[layer, huge]),
        image_of(&config, &many),
        both,
        "not json".to_owned(),
        r#"{"config":{"digest":"sha256:xx","size":1},"layers":[]}"#.to_owned(),
        r#"{"manifests":[{"digest":1}]}"#.to_owned(),
    ] {
        assert_eq!(refusal(&text, None).class(), FailureClass::Corrupt, "{text}");
    }
}

#[test]
fn an_index_beyond_its_bounds_is_refused() {
    let many: Vec<(char, &str)> = (0..=MAX_MANIFESTS).map(|_| ('a', "linux/amd64")).collect();
    assert!(matches!(refusal(&index_of(&many), None), ContentError::TooMany { .. }));
    let large = format!(
        r#"{{"manifests":[{{"digest":"{}","size":{},"platform":{{"os":"linux","architecture":"amd64"}}}}]}}"#,
        digest('a'),
        MAX_MANIFEST + 1
    );
    let refused = index(&large).choose(&Platform::new("linux", "amd64", "")).unwrap_err();
    assert_eq!(refused.class(), FailureClass::Corrupt);
}

#[test]
fn a_part_without_bytes_has_the_digest_of_nothing() {
    let nothing = Digest::of(b"");
    let empty = format!(r#"{{"mediaType":"{}","digest":"{nothing}","size":0}}"#, LAYERS[0]);
    let config = part(CONFIGS[0], 'c', 5);
    assert!(Document::read(image_of(&config, &[empty]).as_bytes(), None).is_ok());
    for (config, layers) in
        [(config, vec![part(LAYERS[0], 'a', 0)]), (part(CONFIGS[0], 'c', 0), vec![part(LAYERS[0], 'a', 1)])]
    {
        let refusal = refusal(&image_of(&config, &layers), None);
        assert!(matches!(refusal, ContentError::Size { size: 0, .. }), "{refusal}");
    }
}
