//! Draws the course of the latencies of a run as SVG: a panel per result, milliseconds on a logarithmic scale over seconds.

use std::error::Error;
use std::path::Path;

use plotters::prelude::{
    BLACK, ChartBuilder, Color, DrawingArea, IntoDrawingArea, IntoLogRange, LineSeries, PathElement, RGBColor,
    SVGBackend, SeriesLabelPosition, WHITE,
};

use super::latency::{Point, Quantiles};
use crate::failure::Failure;

/// The size of one panel in pixels.
const PANEL: (u32, u32) = (900, 280);
/// What is drawn of each point.
const LINES: [Line; 3] = [
    Line { name: "p50", color: RGBColor(0x1b, 0x9e, 0x77), of: |quantiles| quantiles.p50 },
    Line { name: "p99", color: RGBColor(0xd9, 0x5f, 0x02), of: |quantiles| quantiles.p99 },
    Line { name: "max", color: RGBColor(0x75, 0x70, 0xb3), of: |quantiles| quantiles.max },
];
/// The shortest length that is drawn, in milliseconds: the resolution of the measurement.
const SHORTEST: f64 = 0.001;

struct Line {
    name: &'static str,
    color: RGBColor,
    of: fn(&Quantiles) -> f64,
}

/// One panel.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) course: Vec<Point>,
}

/// Writes a picture of `panels`. Those without points are left out.
pub(super) fn write(path: &Path, panels: &[Panel]) -> Result<(), Failure> {
    let what = format!("drawing {}", path.display());
    let svg = draw(panels).map_err(|error| Failure::of(&what, &*error))?;
    std::fs::write(path, svg).map_err(|error| Failure::of(&what, &error))
}

fn draw(panels: &[Panel]) -> Result<String, Box<dyn Error>> {
    let panels: Vec<&Panel> = panels.iter().filter(|panel| !panel.course.is_empty()).collect();
    let mut svg = String::new();
    {
        let rows = panels.len().max(1);
        let height = PANEL.1 * u32::try_from(rows)?;
        let area = SVGBackend::with_string(&mut svg, (PANEL.0, height)).into_drawing_area();
        area.fill(&WHITE)?;
        for (panel, part) in panels.iter().zip(area.split_evenly((rows, 1))) {
            draw_panel(panel, &part)?;
        }
        area.present()?;
    }
    Ok(svg)
}

fn draw_panel(panel: &Panel, area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Result<(), Box<dyn Error>> {
    const FONT: (&str, u32) = ("sans-serif", 16);
    const LEGEND_WIDTH: i32 = 20;
    let end = panel.course.last().map_or(1.0, |point| point.at.as_secs_f64()).max(1.0);
    let highest = panel.course.iter().map(|point| point.quantiles.max).fold(SHORTEST, f64::max);
    let lowest = panel.course.iter().map(|point| point.quantiles.p50).fold(highest, f64::min).max(SHORTEST);
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, FONT)
        .margin(10)
        .x_label_area_size(35)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..end, (lowest / 2.0..highest * 2.0).log_scale())?;
    chart.configure_mesh().x_desc("seconds").y_desc("ms").draw()?;
    for Line { name, color, of } in LINES {
        let points = panel.course.iter().map(|point| (point.at.as_secs_f64(), of(&point.quantiles).max(SHORTEST)));
        let legend = move |(x, y)| PathElement::new([(x, y), (x + LEGEND_WIDTH, y)], color);
        chart.draw_series(LineSeries::new(points, color))?.label(name).legend(legend);
    }
    let labels = &mut chart.configure_series_labels();
    labels.position(SeriesLabelPosition::UpperRight).background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn point(at: u64, p50: f64, max: f64) -> Point {
        Point { at: Duration::from_millis(at), quantiles: Quantiles { p50, p95: max, p99: max, max } }
    }

    #[test]
    fn there_is_a_panel_with_its_lines_for_each_result_that_has_a_course() {
        let course = vec![point(250, 1.0, 9.0), point(750, 2.0, 20.0), point(1_250, 0.0, 4.0)];
        let panel = |title: &str, course| Panel { title: title.to_owned(), course };
        let svg =
            draw(&[panel("steady 5/s", course.clone()), panel("drain", vec![]), panel("saturate", course)]).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(svg.contains("steady 5/s") && svg.contains("saturate") && !svg.contains("drain"));
        assert_eq!(svg.matches("p99").count(), 2);
        // Each line of three points is one polyline; legends and axes are polylines of two.
        let is_line = |points: &&str| points.split('"').next().unwrap_or_default().split_whitespace().count() == 3;
        assert_eq!(svg.split("points=\"").skip(1).filter(is_line).count(), 2 * LINES.len(), "{svg}");
    }

    #[test]
    fn nothing_measured_is_an_empty_picture() {
        assert!(draw(&[]).unwrap().starts_with("<svg"));
    }
}
