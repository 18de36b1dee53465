//! Plots as files: SVG, and PNG where the feature `png` is on.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::files;
use crate::plot::{Figure, Theme, svg};

/// Pixels of a PNG for one of the SVG.
#[cfg(feature = "png")]
const SCALE: f32 = 2.0;

/// Writes the figure as its extension says, `.svg` or `.png`. The SVG follows the theme of its
/// reader, the PNG is light.
pub fn save(figure: &Figure, path: &Path) -> Result<()> {
    save_as(figure, path, Theme::Auto)
}

/// Writes the figure in a theme of choice.
pub fn save_as(figure: &Figure, path: &Path, theme: Theme) -> Result<()> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
    let bytes = match extension.as_str() {
        "svg" => svg(figure, theme).into_bytes(),
        #[cfg(feature = "png")]
        "png" => crate::plot::png(figure, theme, SCALE)?,
        #[cfg(not(feature = "png"))]
        "png" => {
            bail!("toclip was built without the feature `png`; write {} as .svg", path.display())
        }
        _ => bail!("cannot write the plot {}: its name must end in .svg or .png", path.display()),
    };
    files::write(path, &bytes)
}

/// Writes the figure in every format of this build, as `STEM.svg` and `STEM.png`; the files.
pub fn write(figure: &Figure, stem: &Path) -> Result<Vec<PathBuf>> {
    files::write_formats(stem, render(figure)?)
}

/// The figure in every format of this build, each with its extension.
pub fn render(figure: &Figure) -> Result<Vec<(&'static str, Vec<u8>)>> {
    Ok(vec![
        ("svg", svg(figure, Theme::Auto).into_bytes()),
        #[cfg(feature = "png")]
        ("png", crate::plot::png(figure, Theme::Auto, SCALE)?),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Chart;

    fn figure() -> Figure {
        Chart::new("t").line("a", &[1.0, 2.0], &[3.0, 4.0]).into()
    }

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        std::fs::read_dir(folder).unwrap().map(|e| name(e).into_string().unwrap()).collect()
    }

    #[test]
    fn the_extension_chooses_and_folders_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let svg = folder.path().join("a/b/plot.SVG");
        let png = folder.path().join("a/b/plot.png");
        save(&figure(), &svg).unwrap();
        save(&figure(), &png).unwrap();
        save(&figure(), &png).unwrap();
        assert!(std::fs::read_to_string(svg).unwrap().starts_with("<svg"));
        assert!(std::fs::read(&png).unwrap().starts_with(b"\x89PNG"));
        assert_eq!(names(&folder.path().join("a/b")).len(), 2);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let plain = folder.path().join("plain");
            std::fs::write(&plain, "").unwrap();
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode(&png), mode(&plain));
        }
    }

    #[test]
    fn an_unknown_extension_is_named_before_anything_is_made() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["new/plot.pdf", "new/plot"] {
            let error = save(&figure(), &folder.path().join(name)).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(".svg or .png"), "{error}");
        }
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_failure_names_the_path_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken.svg");
        std::fs::create_dir_all(taken.join("inside")).unwrap();
        let error = save(&figure(), &taken).unwrap_err();
        assert!(format!("{error:#}").contains("taken.svg"));
        assert_eq!(names(folder.path()), ["taken.svg"]);

        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = save(&figure(), &file.join("plot.svg")).unwrap_err();
        assert!(format!("{error:#}").contains("cannot create the folder"));
        assert_eq!(names(folder.path()).len(), 2);
    }
}
