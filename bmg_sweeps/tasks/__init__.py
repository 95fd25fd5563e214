"""Few-shot tasks: data sets of labeled images, and episodes drawn from them."""
