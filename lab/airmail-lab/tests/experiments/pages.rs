//! The page of `docs/` that is made from the laboratory's command line.

use airmail_testkit::pages::{self, Page};

#[test]
fn the_page_of_the_laboratorys_command_line_is_fresh() {
    Page::of("airmail-lab", "lab-command-line.md").freshen(&pages::command_line("airmail-lab"));
}
