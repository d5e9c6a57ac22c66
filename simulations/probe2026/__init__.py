"""How Sharp and Bias-Robust is a Model? (PROBE, WSDM 2026): metrics by sharpness and popularity."""
