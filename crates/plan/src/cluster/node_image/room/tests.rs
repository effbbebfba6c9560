use super::*;

/// How many a namespace gets one by one, beside so many of others.
fn taken(others: usize, most: usize) -> usize {
    (0..=most).find(|own| fits(1, others + own, *own, most).is_err()).unwrap()
}

#[test]
fn one_alone_gets_three_quarters_and_the_next_three_quarters_of_the_rest() {
    assert_eq!(taken(0, 256), 192);
    assert_eq!(taken(192, 256), 48);
    assert_eq!(taken(192 + 48, 256), 12);
    assert_eq!(taken(192 + 48 + 12, 256), 3);
}

#[test]
fn who_has_nothing_and_gets_nothing_is_told_that_it_is_full() {
    assert_eq!(fits(1, 256, 0, 256), Err(Crowd::Full));
    assert_eq!(fits(1, 255, 0, 256), Err(Crowd::Full));
    assert_eq!(fits(1, 192, 192, 256), Err(Crowd::Share));
    assert_eq!(fits(1, 300, 2, 256), Err(Crowd::Full));
    assert_eq!(fits(0, 300, 300, 256), Ok(()), "what is there stays");
}
