"""Options of the schemes: a constructor each, which makes the record that `nsds.simulate` takes."""
