"""What a build is: workspace, plan, what of it remains, doing it. Knows no scheduler."""
