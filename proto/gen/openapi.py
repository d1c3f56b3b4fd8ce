def document(model, routes, version):
    return {}
