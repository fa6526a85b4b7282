"""Where `chart_figure` was."""

from ncu_roofline.rendering.picture import chart_figure as chart_figure
