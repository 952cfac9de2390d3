"""What files of mechanisms in the plane and in space share: values, named parts, line numbers."""
