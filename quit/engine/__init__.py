"""What a build is: workspace, plan, pipeline, workers. Knows no scheduler."""
