"""What a release tells about secret locations: exact information, its largest move, posterior width, composition."""
