"""How a release in many files becomes public: whole, listed and recorded, or not at all."""
