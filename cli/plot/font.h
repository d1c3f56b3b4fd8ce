/* A bitmap font of five by seven dots: digits, capitals and a few signs. */
#pragma once

/* Returns the rows of a character: seven rows from the top; bit 4 is the leftmost dot. Small
 * letters look like capitals. A character without a glyph is a hollow box. */
const unsigned char *mr_plot_glyph(char c);
