//! Short lists, in order. (The standard library's sorting is five kilobytes of code for each type, and in libtopdown.so's file.)
#![forbid(unsafe_code)]

/// Sorts a list of few; what has the same key stays in its order.
pub fn sort_by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    for end in 1..list.len() {
        let mut place = end;
        while place > 0 && key(&list[place - 1]) > key(&list[place]) {
            list.swap(place - 1, place);
            place -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_list_is_in_order_and_what_has_the_same_key_as_it_was() {
        let mut lists = vec![vec![]];
        for _ in 0..6 {
            let longer = |list: Vec<u32>| (0..3).map(move |next| [&list[..], &[next]].concat());
            lists = lists.into_iter().flat_map(longer).collect();
            for list in &lists {
                let mut numbered: Vec<(usize, u32)> = list.iter().copied().enumerate().collect();
                let mut expected = numbered.clone();
                super::sort_by_key(&mut numbered, |(_, key)| *key);
                expected.sort_by_key(|(_, key)| *key);
                assert_eq!(numbered, expected);
            }
        }
    }
}
