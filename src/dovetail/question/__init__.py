"""What is asked and learned, one file each: shares, a number, covariance. Who makes the noise is not here."""
