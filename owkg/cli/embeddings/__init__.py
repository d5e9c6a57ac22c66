"""Commands of embedding models: training, ranking, classification, alignment."""
