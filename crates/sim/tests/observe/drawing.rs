//! The picture of the dashboard in the documents, drawn from the dashboard itself.

use std::fmt::Write as _;

use crate::dashboard::{Panel, Place, dashboard};
use crate::{in_tree, read};

const FILE: &str = "docs/dashboard.svg";
/// Whoever changes the dashboard runs the test once with this set.
const UPDATE: &str = "PREWARM_DRAW";

/// The size of a unit of the grid in the picture.
const WIDTH: u32 = 40;
const HEIGHT: u32 = 16;
const GAP: u32 = 3;

#[test]
fn the_picture_is_that_of_the_dashboard() {
    let panels = dashboard().panels;
    let picture = draw(&panels);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(in_tree(FILE), &picture).unwrap();
    }
    let kept = read(FILE);
    assert!(kept == picture, "{FILE} is out of date; run this test with {UPDATE}=1 and commit the result");
    for panel in panels {
        assert!(kept.contains(&escape(&panel.title)), "{}", panel.title);
    }
}

fn draw(panels: &[Panel]) -> String {
    let bottom = panels.iter().map(|panel| panel.grid_pos.y + panel.grid_pos.h).max().unwrap_or(0);
    let (width, height) = (24 * WIDTH, bottom * HEIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <title>The dashboard of Prewarm: where its panels are</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#f4f5f5\"/>\n"
    );
    for panel in panels {
        match panel.kind.as_str() {
            "row" => draw_row(&mut svg, panel),
            kind => draw_panel(&mut svg, panel, kind),
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_row(svg: &mut String, panel: &Panel) {
    let y = panel.grid_pos.y * HEIGHT + 12;
    let title = escape(&panel.title);
    writeln!(svg, "<text x=\"6\" y=\"{y}\" font-weight=\"bold\">▾ {title}</text>").unwrap();
}

fn draw_panel(svg: &mut String, panel: &Panel, kind: &str) {
    let Place { x, y, w, h } = panel.grid_pos;
    let (left, top) = (x * WIDTH + GAP, y * HEIGHT + GAP);
    let (width, height) = (w * WIDTH - 2 * GAP, h * HEIGHT - 2 * GAP);
    let title = escape(&panel.title);
    let frame = format!("x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"");
    writeln!(svg, "<rect {frame} rx=\"3\" fill=\"#fff\" stroke=\"#c7d0d9\"/>").unwrap();
    writeln!(svg, "<text x=\"{}\" y=\"{}\">{title}</text>", left + 8, top + 16).unwrap();
    let low = top + height - 12;
    if kind == "stat" {
        let place = format!("x=\"{}\" y=\"{}\"", left + 8, low + 2);
        writeln!(svg, "<text {place} font-size=\"22\" fill=\"#3871dc\">#</text>").unwrap();
    } else {
        let across = [8, width / 3, width * 2 / 3, width - 8].map(|far| left + far);
        let down = [low, top + height / 2, top + 34, top + height / 2];
        let points = across.iter().zip(down).map(|(across, down)| format!("{across},{down}"));
        let points = points.collect::<Vec<_>>().join(" ");
        writeln!(svg, "<polyline points=\"{points}\" fill=\"none\" stroke=\"#3871dc\"/>").unwrap();
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
