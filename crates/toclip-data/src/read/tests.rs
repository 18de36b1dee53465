//! The same samples in every format, and every error message.

use super::*;
use crate::{Error, SampleSource};
use std::path::PathBuf;

/// Files that NumPy and Arrow wrote (`scripts/fixtures/samples.py`): row k, column j of the
/// features is k + j/10, the target is −k.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/samples").join(name)
}

fn samples(source: &dyn SampleSource, size: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut features, mut targets) = (Vec::new(), Vec::new());
    source
        .visit(size, &mut |block| {
            assert!((1..=size).contains(&block.targets.len()));
            assert_eq!(block.features.len(), block.targets.len() * block.cols);
            features.extend_from_slice(block.features);
            targets.extend_from_slice(block.targets);
            Ok(())
        })
        .unwrap();
    (features, targets)
}

fn expected(rows: usize) -> (Vec<f64>, Vec<f64>) {
    let k = || (0..rows).map(|k| k as f64);
    (k().flat_map(|k| [k, k + 0.1, k + 0.2]).collect(), k().map(|k| -k).collect())
}

fn column(name: &str) -> Target {
    Target::Column(name.into())
}

/// The messages for files, one a line, without their folders.
fn said<'a>(cases: impl IntoIterator<Item = (&'a Path, Target)>) -> String {
    let message = |(path, target): (&Path, Target)| {
        let error = open_samples(path, &target).err().expect("refused").to_string();
        error.replace(&format!("{}/", path.parent().unwrap().display()), "")
    };
    cases.into_iter().map(message).collect::<Vec<_>>().join("\n")
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

#[test]
fn numpy_archives_give_the_same_samples() {
    let array = column("labels");
    for (name, target, rows) in [
        ("plain.npz", Target::Last, 5),
        ("plain.npz", column("y"), 5),
        ("packed.npz", Target::Last, 1100),
        ("packed.npz", array, 1100),
        ("one.npz", Target::Last, 5),
        ("one.npz", column("4"), 5),
    ] {
        let source = open_samples(fixture(name), &target).unwrap();
        assert_eq!((source.rows(), source.cols()), (rows, 3), "{name}");
        for size in [1, 7, 4096] {
            assert_eq!(samples(source.as_ref(), size), expected(rows), "{name}");
        }
    }
    insta::assert_snapshot!(said([
        (&*fixture("many.npz"), Target::Last),
        (&fixture("columns.npz"), Target::Last),
        (&fixture("plain.npz"), column("z")),
    ]));
}

/// An array of doubles as NumPy's format specification has it.
fn npy(shape: &str, descr: &str, values: &[f64]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes().chain(values.iter().flat_map(|v| v.to_le_bytes())));
    bytes
}

#[test]
fn which_array_of_an_archive_is_the_target_is_not_guessed() {
    let folder = Folder::new();
    let x = npy("(2, 2)", "<f8", &[1.0, 2.0, 3.0, 4.0]);
    let (b, words) = (npy("(2,)", "<f8", &[5.0, 6.0]), npy("(2,)", "<U2", &[0.0, 0.0]));
    let zip = |name: &str, members: &[(&str, &[u8])]| {
        crate::data_sets::archive::tests::write_zip(folder.0.path().join(name), members)
    };
    let two = zip("two.npz", &[("foo.npy", &x), ("bar.npy", &b)]);
    let targets =
        |path: &Path, name| samples(open_samples(path, &column(name)).unwrap().as_ref(), 9).1;
    assert_eq!(targets(&two, "bar"), [5.0, 6.0]);
    assert_eq!(targets(&two, "2"), [2.0, 4.0]);
    // Targets that cannot be read are no reason to use something else.
    let text = zip("text.npz", &[("X.npy", &x), ("y.npy", &words)]);
    let nan = npy("(2,)", "<f8", &[5.0, f64::NAN]);
    let nan = zip("nan.npz", &[("X.npy", &x), ("y.npy", &nan)]);
    insta::assert_snapshot!(said([
        (&*two, Target::Last),
        (&two, column("baz")),
        (&two, column("b.npy")),
        (&text, Target::Last),
        (&nan, Target::Last),
    ]));
    // One array alone has its targets in the last column.
    let one = zip("one.npz", &[("foo.npy", &x)]);
    assert_eq!(samples(open_samples(&one, &Target::Last).unwrap().as_ref(), 9).1, [2.0, 4.0]);
}

#[test]
fn column_order_and_big_endian_singles() {
    let source = open_samples(fixture("columns.npy"), &Target::Last).unwrap();
    let (features, targets) = samples(source.as_ref(), 2);
    let (x, b) = expected(5);
    assert_eq!(targets, b);
    assert!(features.iter().zip(x).all(|(a, b)| *a == f64::from(b as f32)));
}

#[test]
fn parquet_has_every_type_of_number() {
    let source = open_samples(fixture("numbers.parquet"), &column("target")).unwrap();
    assert_eq!((source.rows(), source.cols()), (1100, 7));
    let (features, targets) = samples(source.as_ref(), 64);
    assert_eq!(targets, expected(1100).1);
    for (row, x) in features.chunks(7).enumerate() {
        let k = row as f64;
        let even = f64::from(u8::from(row % 2 == 0));
        assert_eq!(x, [k, k + 0.5, -k, k - 7.0, k % 100.0, k + 4e9, even]);
    }
    // Any column can be the target.
    let source = open_samples(fixture("numbers.parquet"), &column("1")).unwrap();
    assert_eq!(samples(source.as_ref(), 2000).1[1099], 1099.0);
    assert_eq!(open_samples(fixture("gzip.parquet"), &Target::Last).unwrap().rows(), 5);
}

#[test]
fn parquet_without_numbers() {
    let names = ["zstd", "text", "missing", "nan", "date", "list", "index", "none"];
    let paths = names.map(|name| fixture(&format!("{name}.parquet")));
    insta::assert_snapshot!(said(paths.iter().map(|path| (&**path, Target::Last))));
    let folder = Folder::new();
    let bytes = std::fs::read(fixture("numbers.parquet")).unwrap();
    let cut = folder.file("cut.parquet", &bytes[..bytes.len() / 2]);
    let mut wrong = bytes;
    wrong[40..4000].fill(0x55);
    let wrong = folder.file("wrong.parquet", wrong);
    // The rest of these messages is the Parquet library's.
    for path in [&cut, &wrong] {
        assert!(said([(&**path, Target::Last)]).contains("damaged or cut short"));
    }
}

#[test]
fn csv_columns_by_name_and_number() {
    let folder = Folder::new();
    let named = folder.file("a.csv", "x,price,y\n1,10,2\n3,30,4\n5,50,6\n");
    for target in [column("price"), column("2")] {
        let source = open_samples(&named, &target).unwrap();
        assert_eq!((source.rows(), source.cols()), (3, 2));
        let all = (vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], vec![10.0, 30.0, 50.0]);
        assert_eq!(samples(source.as_ref(), 2), all);
    }
    let source = open_samples(&named, &Target::default()).unwrap();
    assert_eq!(samples(source.as_ref(), 9).1, [2.0, 4.0, 6.0]);
    let apart = folder.file("b.csv", "7\n8\n9\n");
    let source = open_samples(&named, &Target::from_word(apart.to_str().unwrap())).unwrap();
    assert_eq!((source.cols(), samples(source.as_ref(), 9).1), (3, vec![7.0, 8.0, 9.0]));

    // Such a name is a column's where there is one.
    let speeds = folder.file("s.csv", "x,km/h,y.csv\n1,2,3\n");
    assert!(["km/h", "y.csv"].iter().all(|name| open_samples(&speeds, &column(name)).is_ok()));
    let pandas = folder.file("f.csv", "0,1,y\n1,2,3\n4,5,6\n");
    let source = open_samples(&pandas, &column("1")).unwrap();
    assert_eq!(samples(source.as_ref(), 9).1, [2.0, 5.0], "the name before the position");
    let twice = folder.file("c.csv", "x,x\n1,2\n");
    let bare = folder.file("d.csv", "1,2\n");
    let short = folder.file("e.csv", "1\n2\n");
    let numpy = fixture("columns.npy");
    let messages = said([
        (&*named, column("size")),
        (&named, column("pric")),
        (&named, column("4")),
        (&named, column("nosuch.npy")),
        (&numpy, column("no/such")),
        (&twice, column("x")),
        (&bare, column("x")),
        (&named, Target::File(short)),
        (&named, Target::File(named.clone())),
    ]);
    insta::assert_snapshot!(messages);
}

#[test]
fn one_column_by_name_and_number() {
    let folder = Folder::new();
    let table = folder.file("a.csv", "step,residual\n1,10\n2,20\n3,30\n");
    for name in ["residual", "2"] {
        assert_eq!(read_column(&table, Some(name)).unwrap(), [10.0, 20.0, 30.0]);
    }
    let row = folder.file("row.csv", "1,2,3\n");
    assert_eq!(read_column(&row, None).unwrap(), [1.0, 2.0, 3.0]);
    let results = [Some("resid"), Some("weight"), Some("3"), Some("0"), None]
        .map(|column| read_column(&table, column));
    insta::assert_snapshot!(crate::testing::messages(folder.0.path(), results));
}

#[test]
fn content_decides_and_what_is_wrong_is_said() {
    let folder = Folder::new();
    let csv_bytes: &[u8] = b"1,2\n3,4\n";
    let npy = std::fs::read(fixture("columns.npy")).unwrap();
    assert_eq!(open_samples(folder.file("a.npy", csv_bytes), &Target::Last).unwrap().rows(), 2);
    assert_eq!(open_samples(folder.file("a.csv", npy), &Target::Last).unwrap().rows(), 5);
    let files = [
        ("p.csv", &b"\x89PNG\r\n\x1a\n"[..]),
        ("e.csv", b""),
        ("h.csv", b"a,b\n"),
        ("g.csv", b"\x1f\x8b\x08"),
        ("u.csv", b"1\x00,\x002\x00"),
        ("1.csv", b"1\n2\n"),
        ("w.csv", b"1,2\n3,4\n5\n"),
        ("t.csv", b"a,b\n1,2\n3,red\n"),
        ("n.csv", b"1,2\nnan,4\n"),
        ("b.csv", b"1,2\n3,true\n"),
        ("z.npz", b"PK\x03\x04rest"),
        ("z.npy", b"\x93NUMPYrest"),
    ]
    .map(|(name, bytes)| folder.file(name, bytes));
    let inside = folder.0.path().join("folder");
    std::fs::create_dir(&inside).unwrap();
    let paths = files.iter().map(|path| &**path).chain([&*inside]);
    insta::assert_snapshot!(said(paths.map(|path| (path, Target::Last))));
    assert!(matches!(open_samples("no/such", &Target::Last), Err(Error::Io { .. })));
}

#[test]
fn a_file_that_changes_is_noticed() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "1,2\n3,4\n");
    let source = open_samples(&path, &Target::Last).unwrap();
    for other in ["1,2\n", "1,2\n3,4\n5,6\n", "1,2,3\n4,5,6\n"] {
        folder.file("a.csv", other);
        let error = source.visit(10, &mut |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("has changed since it was opened"), "{error}");
    }
    folder.file("a.csv", "1,2\n3,4\n");
    let stop = source.visit(1, &mut |_| Err(Error::Invalid("enough".into())));
    assert_eq!(stop.unwrap_err().to_string(), "enough");
}
