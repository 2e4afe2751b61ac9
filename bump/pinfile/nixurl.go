package pinfile

func (d *nixDoc) urls() []URL { return nil }
