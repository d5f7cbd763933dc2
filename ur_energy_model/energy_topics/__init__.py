"""Content of the topics below energy/, for the estimator node and for bags, without ROS."""
